// A generate block with the reference's instance name, which hides it.
module TopModule(input clk, input request, output grant);
  generate if (1) begin : good1 wire grant = 1'b0; end endgenerate
  assign grant = tb.good1.grant;
endmodule
