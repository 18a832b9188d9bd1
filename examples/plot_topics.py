"""
Topics of the standard library
==============================

The docstrings of Python's own library, sorted by what they are about. The left panel of ``topics.png`` shows
how much of each topic there is and its first words, the right one which modules speak of which topic.
"""

import matplotlib.pyplot as plt
import numpy as np

from nonneg.applications import TopicModel
from nonneg.datasets import load_standard_library

# %%
# A public object a document, its docstring the text, its module the label. Modules with few of them are left
# out.
library = load_standard_library(min_documents=40)
texts = list(library.extras["texts"])

# %%
# Words of every third document or more say little about what it is about.
model = TopicModel(8, stop_words="english", max_share=0.3, random_state=0)
memberships = model.fit_transform(texts)
words = [", ".join(topic) for topic in model.top_words(4)]

# %%
# The documents that show the largest topic best, and what a new text is about.
largest = int(np.argmax(model.topic_shares_))
examples = [library.extras["objects"][row] for row in model.example_documents(texts, 3)[largest]]
new = model.transform(["Open the file at this path and read its bytes."])

# %%
# The mean memberships of the documents of a module.
by_module = np.array([memberships[library.y == at].mean(axis=0) for at in range(len(library.names))])
order = np.lexsort((-by_module.max(axis=1), by_module.argmax(axis=1)))
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained", width_ratios=[1, 1.3])
left.barh(np.arange(8), 100 * model.topic_shares_)
left.set_yticks(np.arange(8), words, fontsize=8)
left.invert_yaxis()
left.set_xlabel("share of the documents, %")
right.imshow(by_module[order].T, aspect="auto", cmap="Blues")
right.set_xticks(np.arange(len(order)), [library.names[at] for at in order], rotation=90, fontsize=8)
right.set_yticks(np.arange(8), [str(at) for at in range(8)])
right.set_ylabel("topic")
right.set_title(f"the largest topic: {', '.join(examples)}", fontsize=8)
figure.savefig("topics.png", dpi=120)
