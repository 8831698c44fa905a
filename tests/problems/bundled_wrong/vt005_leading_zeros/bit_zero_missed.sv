// Wrong: a one in bit 0 alone is not seen.
module TopModule (
  input  logic [15:0] data,
  output logic [4:0]  count,
  output logic [15:0] normalized,
  output logic        zero
);

  integer i;

  always_comb begin
    count = 5'd16;
    for (i = 1; i < 16; i = i + 1)
      if (data[i]) count = 15 - i;
  end

  assign normalized = data << count;
  assign zero = (data == 16'd0);

endmodule
