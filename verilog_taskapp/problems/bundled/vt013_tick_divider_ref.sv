// Reference of vt013_tick_divider: programmable tick divider.
module RefModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       enable,
  input  logic [3:0] period,
  output logic       tick,
  output logic [3:0] phase
);

  always_ff @(posedge clk) begin
    if (reset) begin
      phase <= 4'd0;
      tick <= 1'b0;
    end else if (!enable) begin
      tick <= 1'b0;
    end else if (phase >= period) begin
      phase <= 4'd0;
      tick <= 1'b1;
    end else begin
      phase <= phase + 4'd1;
      tick <= 1'b0;
    end
  end

endmodule
