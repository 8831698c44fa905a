// Right: through binary arithmetic and a division by ten.
module TopModule (
  input  logic [7:0] a,
  input  logic [7:0] b,
  input  logic       cin,
  output logic [7:0] sum,
  output logic       cout,
  output logic       invalid
);

  wire       bad = (a[3:0] > 9) | (a[7:4] > 9) | (b[3:0] > 9) | (b[7:4] > 9);
  wire [7:0] total = a[7:4] * 8'd10 + a[3:0] + b[7:4] * 8'd10 + b[3:0] + cin;
  wire [7:0] low = (total >= 8'd100) ? total - 8'd100 : total;
  wire [7:0] t = low / 8'd10;
  wire [7:0] u = low % 8'd10;

  assign invalid = bad;
  assign cout = !bad && (total >= 8'd100);
  assign sum = bad ? 8'd0 : {t[3:0], u[3:0]};

endmodule
