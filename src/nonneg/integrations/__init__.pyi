from nonneg.integrations import anndata as anndata
from nonneg.integrations import scanpy as scanpy
