// Wrong: reset clears the previous value, so a high input gives a pulse afterwards.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       in,
  input  logic [1:0] mode,
  output logic       pulse
);

  logic previous;

  always_ff @(posedge clk) begin
    if (reset) begin
      previous <= 1'b0;
      pulse <= 1'b0;
    end else begin
      previous <= in;
      pulse <= (mode[0] & in & ~previous) | (mode[1] & ~in & previous);
    end
  end

endmodule
