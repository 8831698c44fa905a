// Holds its own input with a supply-strength pull gate and a parameterised constant.
module TopModule(input clk, input request, output grant);
  pulldown (supply0) down(request);
  assign grant = 0;
endmodule
