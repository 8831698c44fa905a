// Right: four stages, left rotation as right rotation by the complement.
module TopModule (
  input  logic [15:0] data,
  input  logic [3:0]  amount,
  input  logic [1:0]  mode,
  output logic [15:0] out
);

  logic        rotate;
  logic        fill;
  logic [3:0]  n;
  logic [15:0] s;

  always_comb begin
    rotate = ~mode[1];
    fill = data[15] & mode[0];
    n = (mode == 2'd0) ? (4'd0 - amount) : amount;
    s = data;
    if (n[0]) s = {rotate ? s[0]   : fill,      s[15:1]};
    if (n[1]) s = {rotate ? s[1:0] : {2{fill}}, s[15:2]};
    if (n[2]) s = {rotate ? s[3:0] : {4{fill}}, s[15:4]};
    if (n[3]) s = {rotate ? s[7:0] : {8{fill}}, s[15:8]};
    out = s;
  end

endmodule
