// Wrong: a double error is treated like a single one.
module TopModule (
  input  logic [7:0] code,
  output logic [3:0] data,
  output logic       corrected,
  output logic       uncorrectable
);

  logic [2:0] syndrome;
  logic       odd;
  logic [7:0] fixed;

  assign syndrome[0] = code[1] ^ code[3] ^ code[5] ^ code[7];
  assign syndrome[1] = code[2] ^ code[3] ^ code[6] ^ code[7];
  assign syndrome[2] = code[4] ^ code[5] ^ code[6] ^ code[7];
  assign odd = ^code;

  assign fixed = (syndrome != 0) ? code ^ (8'd1 << syndrome) : code;
  assign data = {fixed[7], fixed[6], fixed[5], fixed[3]};
  assign corrected = odd;
  assign uncorrectable = !odd && (syndrome != 3'd0);

endmodule
