// Right: plain integers with comparisons.
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

  integer      p;
  integer      total;
  integer      scaled;
  integer      sum;
  reg          v;
  reg          c;

  always @(posedge clk)
    if (~rst_n) begin
      v <= 0;
      c <= 0;
      total <= 0;
      saturated <= 0;
    end else begin
      v <= valid;
      c <= clear;
      p <= $signed(a) * $signed(b);
      if (c | v) begin
        sum = (c ? 0 : total) + (v ? p : 0);
        if (c) saturated <= 0;
        if (sum > 131071) begin
          total <= 131071;
          saturated <= 1;
        end else if (sum < -131072) begin
          total <= -131072;
          saturated <= 1;
        end else
          total <= sum;
      end
    end

  assign acc = total;

  always @* begin
    scaled = (total + 64) >>> 7;
    if (scaled > 127) scaled = 127;
    if (scaled < -128) scaled = -128;
    y = scaled;
  end

endmodule
