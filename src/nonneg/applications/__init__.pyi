from nonneg.applications.audio import SourceSeparation as SourceSeparation
from nonneg.applications.communities import MixedMembership as MixedMembership
from nonneg.applications.hyperspectral import Unmixing as Unmixing
from nonneg.applications.signatures import MutationalSignatures as MutationalSignatures
from nonneg.applications.topics import TopicModel as TopicModel
