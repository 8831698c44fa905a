// Ends the simulation with an error status when most rows are written.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  initial begin q = 0; #150 $stop; $fatal(0, "Mismatches: 0 in 60 samples"); end
endmodule
