// Wrong: the previous value is not updated in mode 0.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       in,
  input  logic [1:0] mode,
  output logic       pulse
);

  logic previous;

  always_ff @(posedge clk) begin
    if (mode != 2'd0 || reset) previous <= in;
    if (reset)
      pulse <= 1'b0;
    else
      pulse <= (mode[0] & in & ~previous) | (mode[1] & ~in & previous);
  end

endmodule
