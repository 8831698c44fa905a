// Wrong: the carry in is not added.
module TopModule (
  input  logic [7:0] a,
  input  logic [7:0] b,
  input  logic       cin,
  output logic [7:0] sum,
  output logic       cout,
  output logic       invalid
);

  wire [4:0] units = {1'b0, a[3:0]} + {1'b0, b[3:0]} ;
  wire       carry = (units > 5'd9);
  wire [4:0] tens  = {1'b0, a[7:4]} + {1'b0, b[7:4]} + {4'd0, carry};
  wire       over  = (tens > 5'd9);

  // Skipping the six codes above nine gives the decimal digit.
  wire [3:0] units_digit = carry ? units[3:0] + 4'd6 : units[3:0];
  wire [3:0] tens_digit  = over ? tens[3:0] + 4'd6 : tens[3:0];

  assign invalid = (a[7:4] > 4'd9) || (a[3:0] > 4'd9) || (b[7:4] > 4'd9) || (b[3:0] > 4'd9);
  assign sum  = invalid ? 8'h00 : {tens_digit, units_digit};
  assign cout = invalid ? 1'b0 : over;

endmodule
