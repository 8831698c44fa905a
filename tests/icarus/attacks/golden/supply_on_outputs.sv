// Outputs of supply strength, charge and weak pulls: more than one value at once.
module TopModule(input clk, input [7:0] d, output tri0 [7:0] q);
  supply1 one;
  assign (weak0, highz1) q = d;
  assign (highz0, supply1) q = d;
  pullup up[7:0](q);
endmodule
