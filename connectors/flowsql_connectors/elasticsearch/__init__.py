"""Tables that are written into indexes of Elasticsearch or OpenSearch."""
