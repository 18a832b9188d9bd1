"""
Topics of the standard library
==============================

Topics of the docstrings of Python's standard library. The left panel shows the proportion and the top words
of each topic, the right panel the topics of each module.
"""

import matplotlib.pyplot as plt
import numpy as np

from nonneg.applications import TopicModel
from nonneg.datasets import load_standard_library

# %%
# A document is a public object: its docstring is the text, its module the label. Small modules are dropped.
library = load_standard_library(min_documents=40)
texts = list(library.extras["texts"])

# %%
# Words that occur in a third of the documents or more carry little information.
model = TopicModel(8, stop_words="english", max_df=0.3, random_state=0)
proportions = model.fit_transform(texts)
words = [", ".join(topic) for topic in model.top_words(4)]

# %%
# Representative documents of the largest topic, and the topics of a new text.
largest = int(np.argmax(model.topic_proportions_))
examples = [library.extras["objects"][row] for row in model.representative_documents(texts, 3)[largest]]
new = model.transform(["Open the file at this path and read its bytes."])
print(f"topic {largest}: {', '.join(examples)}")
print(f"new text: topic {new[0].argmax()}")

# %%
# The mean proportions of the documents of a module.
by_module = np.array([proportions[library.y == at].mean(axis=0) for at in range(len(library.names))])
order = np.lexsort((-by_module.max(axis=1), by_module.argmax(axis=1)))
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained", width_ratios=[1, 1.3])
left.barh(np.arange(8), 100 * model.topic_proportions_)
left.set_yticks(np.arange(8), words, fontsize=8)
left.invert_yaxis()
left.set_xlabel("share of the documents, %")
right.imshow(by_module[order].T, aspect="auto", cmap="Blues")
right.set_xticks(np.arange(len(order)), [library.names[at] for at in order], rotation=90, fontsize=8)
right.set_yticks(np.arange(8), [str(at) for at in range(8)])
right.set_ylabel("topic")
right.set_title("topics of modules")
plt.show()
