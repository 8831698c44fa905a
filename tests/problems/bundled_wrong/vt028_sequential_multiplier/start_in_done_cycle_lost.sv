// Wrong: a start in the cycle of done is not accepted.
module TopModule (
  input  logic        clk,
  input  logic        rst_n,
  input  logic        start,
  input  logic        is_signed,
  input  logic [7:0]  a,
  input  logic [7:0]  b,
  output logic        busy,
  output logic        done,
  output logic [15:0] product
);

  logic [15:0] shifted_a;
  logic [7:0]  rest_b;
  logic [15:0] total;
  logic [2:0]  count;
  logic        signed_mode;

  // In two's complement the top bit of b weighs -128.
  wire        last = (count == 3'd7);
  wire [15:0] part = rest_b[0] ? shifted_a : 16'd0;
  wire [15:0] next_total = (last && signed_mode) ? total - part : total + part;

  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) begin
      busy <= 1'b0;
      done <= 1'b0;
      product <= 16'd0;
    end else begin
      done <= 1'b0;
      if (!busy) begin
        if (start && !done) begin
          busy <= 1'b1;
          shifted_a <= {{8{is_signed && a[7]}}, a};
          rest_b <= b;
          signed_mode <= is_signed;
          total <= 16'd0;
          count <= 3'd0;
        end
      end else begin
        shifted_a <= shifted_a << 1;
        rest_b <= rest_b >> 1;
        total <= next_total;
        count <= count + 3'd1;
        if (last) begin
          busy <= 1'b0;
          done <= 1'b1;
          product <= next_total;
        end
      end
    end
  end

endmodule
