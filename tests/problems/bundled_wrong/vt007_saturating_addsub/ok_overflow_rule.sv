// Right: overflow from the signs of operands and sum.
module TopModule (
  input  logic [7:0] a,
  input  logic [7:0] b,
  input  logic       sub,
  output logic [7:0] result,
  output logic       saturated,
  output logic       negative
);

  wire [7:0] addend = b ^ {8{sub}};
  wire [7:0] sum = a + addend + {7'd0, sub};
  wire       over = (a[7] == addend[7]) && (sum[7] != a[7]);

  assign saturated = over;
  assign result = over ? {a[7], {7{~a[7]}}} : sum;
  assign negative = result[7];

endmodule
