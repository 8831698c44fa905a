// Wrong: mode 1 reports falling and mode 2 rising events.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       in,
  input  logic [1:0] mode,
  output logic       pulse
);

  logic previous;

  always_ff @(posedge clk) begin
    previous <= in;
    if (reset)
      pulse <= 1'b0;
    else
      pulse <= (mode[1] & in & ~previous) | (mode[0] & ~in & previous);
  end

endmodule
