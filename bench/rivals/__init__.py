"""cronring beside others, each at its own documented production settings.

The same for each: one PostgreSQL with fsync on, a database for each contender, as many processes (rivals that more of
them make slower have fewer: contenders.py says by how much), and work that only notes its start: 12 bytes appended to a
file by one system call (programs/starts.py). What that costs is printed.

- *Recurring*: N jobs due in the same second. All contenders run all the time, and each has its own second within a
  cycle of some minutes, so that they take turns. What the others spend meanwhile is measured. From the tick until a
  contender's own tables say that nothing is left to end.
- *Queue*: 20,000 one-shots, from the instant since which they are all due. For rivals that is when their bulk insert
  has returned, with workers waiting, or the first start where workers were quicker than that answer. For cronring it is
  the one that the jobs, created before, are scheduled at.

The short form (`make bench`) has cycles of one minute, and slow rivals with a tenth of the jobs. It is without pg_cron,
which is on a PostgreSQL 15 of its own and knows minutes only.

Rivals' versions stand in requirements.txt and package.json; their settings, and where these are documented, at the head
of programs/*. They are installed into bench/rivals/.venv and bench/rivals/node_modules, and nowhere else.
"""
