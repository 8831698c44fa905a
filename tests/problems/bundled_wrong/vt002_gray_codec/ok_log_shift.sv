// Right: decoding by exclusive ors with doubling shifts.
module TopModule (
  input  logic       to_gray,
  input  logic [5:0] in,
  output logic [5:0] out
);

  logic [5:0] step1;
  logic [5:0] step2;
  logic [5:0] step4;

  always @* begin
    step1 = in ^ (in >> 1);
    step2 = step1 ^ (step1 >> 2);
    step4 = step2 ^ (step2 >> 4);
    if (to_gray) out = step1;
    else         out = step4;
  end

endmodule
