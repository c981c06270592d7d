module example.org/cronring-example

go 1.19
