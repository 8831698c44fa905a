// Wrong: the lower end is -131071.
module TopModule (
  input  logic        clk,
  input  logic        rst_n,
  input  logic        valid,
  input  logic        clear,
  input  logic [7:0]  a,
  input  logic [7:0]  b,
  output logic [17:0] acc,
  output logic        saturated,
  output logic [7:0]  y
);

  logic signed [15:0] prod;
  logic               prod_valid;
  logic               prod_clear;

  wire signed [7:0]  sa = a;
  wire signed [7:0]  sb = b;
  wire signed [18:0] exact = $signed(acc) + prod;
  wire               over = exact[18] ^ exact[17];

  always_ff @(posedge clk) begin
    prod <= sa * sb;
    prod_valid <= valid;
    prod_clear <= clear;
    if (!rst_n) begin
      prod_valid <= 1'b0;
      prod_clear <= 1'b0;
      acc <= 18'd0;
      saturated <= 1'b0;
    end else if (prod_clear) begin
      acc <= prod_valid ? {{2{prod[15]}}, prod} : 18'd0;
      saturated <= 1'b0;
    end else if (prod_valid) begin
      acc <= !over ? exact[17:0] : exact[18] ? 18'h20001 : 18'h1ffff;
      if (over) saturated <= 1'b1;
    end
  end

  // One bit more than acc, so that adding the half cannot overflow; then divided by 128.
  wire signed [18:0] half_up = $signed(acc) + 19'sd64;
  wire signed [11:0] rounded = half_up[18:7];

  assign y = (rounded > 12'sd127) ? 8'h7f : (rounded < -12'sd128) ? 8'h80 : rounded[7:0];

endmodule
