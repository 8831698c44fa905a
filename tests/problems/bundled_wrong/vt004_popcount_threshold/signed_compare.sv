// Wrong: the threshold is compared as a signed number.
module TopModule (
  input  logic [11:0] data,
  input  logic [3:0]  threshold,
  output logic [3:0]  count,
  output logic        above,
  output logic        exact
);

  integer i;

  always_comb begin
    count = 4'd0;
    for (i = 0; i < 12; i = i + 1) count = count + {3'b000, data[i]};
  end

  assign above = ($signed(count) > $signed(threshold));
  assign exact = (count == threshold);

endmodule
