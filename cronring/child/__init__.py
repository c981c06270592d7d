"""The process that runs an author's code: started by the runner with any Python from 3.9 on, standard library only."""
