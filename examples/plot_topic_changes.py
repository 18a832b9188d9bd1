"""
Guided and edited topics
========================

Topics of the docstrings of Python's standard library, two of which are guided by seed words. The figure
shows how similar they are; the tree is cut into groups, and each group is merged.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import dendrogram

from nonneg.applications import TopicModel
from nonneg.datasets import load_standard_library

library = load_standard_library(min_documents=40)
texts = list(library.extras["texts"])

# %%
# Two topics are named and guided, ten are free.
seeds = {"networks": ["socket", "server", "host"], "dates": ["date", "datetime", "time"]}
model = TopicModel(12, seed_words=seeds, stop_words="english", max_df=0.3, random_state=0).fit(texts)
print(model.topic_names_)
print(model.certificate_["seeds-in-their-topics"])

# %%
# The tree joins topics with similar words first.
tree = model.hierarchy()
coarse = model.merge_topics(model.topic_groups(6), texts)
print(coarse.topic_labels(), np.round(coarse.topic_proportions_, 2))

# %%
# The largest topic is split, and renamed. The mapping shows where each topic went.
finer = coarse.split_topic(0, texts, into=2)
finer = finer.rename_topics({0: "the largest"})
print(finer.edits_[1]["mapping"], finer.topic_labels())

# %%
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
dendrogram(tree, labels=model.topic_labels(), orientation="right", ax=axes, color_threshold=0)
axes.set_xlabel("distance")
plt.show()
