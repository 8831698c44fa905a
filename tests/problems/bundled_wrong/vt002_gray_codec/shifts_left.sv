// Wrong: each bit is combined with the lower neighbour.
module TopModule (
  input  logic       to_gray,
  input  logic [5:0] in,
  output logic [5:0] out
);

  logic [5:0] gray;
  logic [5:0] binary;

  assign gray = in ^ (in << 1);

  assign binary[5] = in[5];
  assign binary[4] = ^in[5:4];
  assign binary[3] = ^in[5:3];
  assign binary[2] = ^in[5:2];
  assign binary[1] = ^in[5:1];
  assign binary[0] = ^in[5:0];

  assign out = to_gray ? gray : binary;

endmodule
