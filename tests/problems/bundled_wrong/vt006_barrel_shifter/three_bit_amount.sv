// Wrong: the amount is cut to three bits.
module TopModule (
  input  logic [15:0] data,
  input  logic [3:0]  amount,
  input  logic [1:0]  mode,
  output logic [15:0] out
);

  wire [31:0] twice = {data, data};
  wire [2:0]  n = amount[2:0];
  wire [31:0] left  = twice << n;
  wire [31:0] right = twice >> n;
  wire [31:0] wide  = {{16{data[15]}}, data} >> n;

  assign out = (mode == 2'd0) ? left[31:16]
             : (mode == 2'd1) ? right[15:0]
             : (mode == 2'd2) ? data >> n
                              : wide[15:0];

endmodule
