"""Models that leave the house: ONNX, Elasticsearch, Solr, plain JSON, and a model card."""
