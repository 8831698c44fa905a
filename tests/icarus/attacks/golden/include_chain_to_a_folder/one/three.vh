`include "one"
`include ".."
`include "/dev/null"
`include "values.mem"
