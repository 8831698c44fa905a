// Drives its own input through a bidirectional gate.
module TopModule(input clk, input request, output grant);
  supply0 zero;
  tran join1(request, zero);
  assign grant = 0;
endmodule
