// Wrong: the tick is decoded from the counter.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       enable,
  input  logic [3:0] period,
  output logic       tick,
  output logic [3:0] phase
);

  always_ff @(posedge clk) begin
    if (reset)
      phase <= 4'd0;
    else if (enable)
      phase <= (phase >= period) ? 4'd0 : phase + 4'd1;
  end

  assign tick = enable && (phase >= period);

endmodule
