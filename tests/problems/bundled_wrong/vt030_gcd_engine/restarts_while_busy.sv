// Wrong: a start during a computation restarts it.
module TopModule (
  input  logic       clk,
  input  logic       areset,
  input  logic       start,
  input  logic [7:0] a,
  input  logic [7:0] b,
  output logic       busy,
  output logic       done,
  output logic [7:0] result
);

  logic [7:0] x;
  logic [7:0] y;

  always_ff @(posedge clk or posedge areset) begin
    if (areset) begin
      busy <= 1'b0;
      done <= 1'b0;
      result <= 8'd0;
    end else begin
      done <= 1'b0;
      if (!busy || start) begin
        if (start) begin
          x <= a;
          y <= b;
          busy <= 1'b1;
        end
      end else if (y == 8'd0) begin
        result <= x;
        done <= 1'b1;
        busy <= 1'b0;
      end else if (x < y) begin
        x <= y;
        y <= x;
      end else begin
        x <= x - y;
      end
    end
  end

endmodule
