// Wrong: the 1 is accepted in place of the 8.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       enter,
  input  logic [3:0] digit,
  input  logic       relock,
  output logic       unlocked,
  output logic       alarm,
  output logic [1:0] progress
);

  logic [1:0] wrong;
  logic [3:0] left;
  wire  [3:0] expected = (progress == 2'd0) ? 4'd3 : (progress == 2'd1) ? (digit == 4'd1 ? 4'd1 : 4'd8) : 4'd1;

  assign alarm = (left != 4'd0);

  always_ff @(posedge clk) begin
    if (reset) begin
      unlocked <= 1'b0;
      progress <= 2'd0;
      wrong <= 2'd0;
      left <= 4'd0;
    end else if (left != 4'd0) begin
      left <= left - 4'd1;
    end else if (unlocked) begin
      unlocked <= !relock;
    end else if (enter) begin
      if (digit != expected) begin
        progress <= 2'd0;
        if (wrong == 2'd2) begin
          wrong <= 2'd0;
          left <= 4'd10;
        end else
          wrong <= wrong + 2'd1;
      end else if (progress == 2'd2) begin
        unlocked <= 1'b1;
        progress <= 2'd0;
        wrong <= 2'd0;
      end else
        progress <= progress + 2'd1;
    end
  end

endmodule
