// Right: each segment as a set of digits.
module TopModule (
  input  logic [3:0] digit,
  input  logic       blank,
  input  logic       lamp_test,
  input  logic       active_low,
  output logic [6:0] seg
);

  wire [15:0] one = 16'd1 << digit;
  wire [6:0]  shape;

  assign shape[6] = |(one & 16'b1101_0111_1110_1101);
  assign shape[5] = |(one & 16'b0010_0111_1001_1111);
  assign shape[4] = |(one & 16'b0010_1111_1111_1011);
  assign shape[3] = |(one & 16'b0111_1011_0110_1101);
  assign shape[2] = |(one & 16'b1111_1101_0100_0101);
  assign shape[1] = |(one & 16'b1101_1111_0111_0001);
  assign shape[0] = |(one & 16'b1110_1111_0111_1100);

  assign seg = {7{active_low}} ^ ({7{lamp_test}} | ({7{~blank}} & shape));

endmodule
