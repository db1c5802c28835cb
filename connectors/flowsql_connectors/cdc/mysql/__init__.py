"""Tables of MySQL and MariaDB and their changes: the connector ``mysql-cdc``."""
