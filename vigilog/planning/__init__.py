"""From rules to SELECT statements: join order, SQL for two dialects, the indexes the rules need."""
