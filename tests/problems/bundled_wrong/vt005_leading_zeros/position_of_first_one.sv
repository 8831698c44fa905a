// Wrong: the index of the first one is given, not the zeros before it.
module TopModule (
  input  logic [15:0] data,
  output logic [4:0]  count,
  output logic [15:0] normalized,
  output logic        zero
);

  integer i;

  always_comb begin
    count = 5'd16;
    for (i = 0; i < 16; i = i + 1)
      if (data[i]) count = i;
  end

  assign normalized = data << count;
  assign zero = (data == 16'd0);

endmodule
