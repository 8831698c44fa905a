// Right: the product at once, shown after a one-hot delay line.
module TopModule (
  input  logic        clk,
  input  logic        rst_n,
  input  logic        start,
  input  logic        is_signed,
  input  logic [7:0]  a,
  input  logic [7:0]  b,
  output logic        busy,
  output logic        done,
  output logic [15:0] product
);

  reg [7:0]  stage;
  reg [15:0] answer;
  wire signed [8:0]  x = {is_signed & a[7], a};
  wire signed [8:0]  y = {is_signed & b[7], b};
  wire signed [17:0] xy = x * y;

  always @(posedge clk, negedge rst_n)
    if (~rst_n) begin
      stage <= 8'd0;
      busy <= 1'b0;
      done <= 1'b0;
      product <= 16'd0;
    end else begin
      stage <= {stage[6:0], start & ~busy};
      done <= stage[7];
      if (start & ~busy) begin
        answer <= xy[15:0];
        busy <= 1'b1;
      end
      if (stage[7]) begin
        product <= answer;
        busy <= 1'b0;
      end
    end

endmodule
