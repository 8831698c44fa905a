// Right: a high output that ends when the steps left match.
module TopModule (
  input  logic       clk,
  input  logic       rst_n,
  input  logic       write,
  input  logic [4:0] duty,
  output logic       pwm,
  output logic       period_start
);

  reg [4:0] shadow;
  reg [4:0] width;
  reg [3:0] s;

  assign period_start = ~|s;
  assign pwm = width > s;

  always @(posedge clk) begin
    s <= s + 1;
    if (write) shadow <= duty[4] ? 5'd16 : duty;
    if (&s) begin
      if (write) width <= duty[4] ? 5'd16 : duty;
      else       width <= shadow;
    end
    if (~rst_n) begin
      s <= 0;
      shadow <= 0;
      width <= 0;
    end
  end

endmodule
