// Wrong: the pulse is not registered.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       in,
  input  logic [1:0] mode,
  output logic       pulse
);

  logic previous;

  always_ff @(posedge clk) previous <= in;

  assign pulse = ~reset & ((mode[0] & in & ~previous) | (mode[1] & ~in & previous));

endmodule
