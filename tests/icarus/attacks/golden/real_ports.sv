// Ports of type real where vectors are expected.
module TopModule(input real clk, input real d, output real q);
  assign q = d;
endmodule
