"""stub"""
def print_sql(node): raise NotImplementedError
