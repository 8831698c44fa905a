// Right: binary search by halves.
module TopModule (
  input  logic [15:0] data,
  output logic [4:0]  count,
  output logic [15:0] normalized,
  output logic        zero
);

  logic [15:0] a;
  logic [15:0] b;
  logic [15:0] c;
  logic [15:0] d;

  assign zero = ~|data;
  assign a = (data[15:8] == 8'd0) ? {data[7:0], 8'd0} : data;
  assign b = (a[15:12] == 4'd0) ? {a[11:0], 4'd0} : a;
  assign c = (b[15:14] == 2'd0) ? {b[13:0], 2'd0} : b;
  assign d = c[15] ? c : {c[14:0], 1'b0};
  assign normalized = d;
  assign count = zero ? 5'd16
                      : {1'b0, data[15:8] == 8'd0, a[15:12] == 4'd0, b[15:14] == 2'd0, ~c[15]};

endmodule
