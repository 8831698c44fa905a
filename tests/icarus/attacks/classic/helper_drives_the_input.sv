// Drives its own input through the output of a helper two levels below.
module deeper(output o); assign (supply0, supply1) o = 1'b0; endmodule
module helper(inout i); deeper one(i); endmodule
module TopModule(input clk, input request, output grant);
  helper one(request);
  assign grant = 0;
endmodule
