// Drives its own input through switches, a pull and a part of a concatenation, one of them at a time.
module joined(inout [1:0] pair); supply0 zero; tranif1 join1(pair[0], zero, 1'b1); endmodule
module TopModule(input clk, input request, output grant);
  wire other;
  joined one({other, request});
  assign grant = 0;
endmodule
