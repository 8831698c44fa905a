// Wrong: mode 3 reports only rising events.
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
      pulse <= (mode[0] & in & ~previous) | (mode == 2'd2 & ~in & previous);
  end

endmodule
