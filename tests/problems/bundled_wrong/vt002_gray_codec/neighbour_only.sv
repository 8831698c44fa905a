// Wrong: decoding uses only the next higher code bit, not the decoded one.
module TopModule (
  input  logic       to_gray,
  input  logic [5:0] in,
  output logic [5:0] out
);

  logic [5:0] gray;
  logic [5:0] binary;

  assign gray = in ^ (in >> 1);

  assign binary[5] = in[5];
  assign binary[4] = ^in[5:4];
  assign binary[3] = ^in[4:3];
  assign binary[2] = ^in[3:2];
  assign binary[1] = ^in[2:1];
  assign binary[0] = ^in[1:0];

  assign out = to_gray ? gray : binary;

endmodule
