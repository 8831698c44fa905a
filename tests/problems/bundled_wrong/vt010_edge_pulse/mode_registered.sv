// Wrong: the mode is delayed by a cycle.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       in,
  input  logic [1:0] mode,
  output logic       pulse
);

  logic previous;
  logic [1:0] m;

  always_ff @(posedge clk) begin
    previous <= in;
    m <= mode;
    if (reset)
      pulse <= 1'b0;
    else
      pulse <= (m[0] & in & ~previous) | (m[1] & ~in & previous);
  end

endmodule
